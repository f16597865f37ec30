"""Notices to people, by webhook and e-mail: a group of held writes grew, one waits too long, a review is asked for."""
