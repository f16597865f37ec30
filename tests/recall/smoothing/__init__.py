"""Smoothed recall: the certificate, the draws, the vote, and all of it on a store."""
