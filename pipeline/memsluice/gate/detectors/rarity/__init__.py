"""The default detector: what a write says, how near it comes to what is asked, and how unusual both are for its tenant.

``text`` reads a text, ``classifier`` judges its wording, ``covering`` holds it against questions, ``parts`` says what
that is worth in the tenant, ``memory`` keeps past questions and landed entries as rows, ``screen`` decides a write,
``lookback`` what had landed.
"""
