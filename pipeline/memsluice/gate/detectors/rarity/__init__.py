"""The default detector: what a write says, how near it comes to what is asked, and how unusual both are for its tenant.

``covering`` holds a text against questions, ``evidence`` says what that and its wording are worth in
the tenant, ``memory`` keeps past questions and landed entries as rows, ``screen`` decides a write,
``lookback`` what had landed.
"""
