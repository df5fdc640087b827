"""Everything that may say why a run is as it is, from every host, in one archive.

``gather`` asks all hosts under one deadline, ``signs`` finds in what they tell what looks wrong,
``summary`` says it in words, ``archive`` packs it.
"""
