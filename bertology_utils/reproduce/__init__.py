"""Claims measured again outside the book: any rows, any models, in parallel, resumable.

A claim is measured by the cells of its chapter, up to the one that records it; so what is
reproduced here is what the book shows, and no experiment exists twice.

Submodules are imported on use: the build of the book reads :mod:`.chapters` and needs no more.
"""
