"""What is measured without this package: peers, the clock, the problems and the checks, for any environment with NumPy.

Files here import each other relatively and nothing else of `sgmcmc`. ``python run.py CONFIG FOLDER RESULT`` runs one entry.
"""
