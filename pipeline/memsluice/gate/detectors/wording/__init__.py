"""The wording signal: tokens of a text and the classifier over them."""
