"""The console: held writes and all that an operator looks at, in a browser. Needs the extra ``console``.

**How a page is added**: one file ``pages/<name>.py`` with ``ROUTES`` (Starlette routes; plain functions, which run in a
thread) and, where it stands in the menu, ``MENU``; its templates extend ``base.html``. A page begins with
:func:`memsluice.console.asking.visitor`, which says who looks and refuses who may not, passes ``visitor.tenants`` to
whatever it asks, and puts texts that somebody else chose on the page with the filter ``hostile`` alone.

**What a page cannot do**: scripts and styles stand in ``static/``, never in a page; no script may turn text into HTML
(``trusted-types 'none'``), so that scripts build elements and set ``textContent``; no address holds content.
"""
