#!/usr/bin/python3
"""From a capture to a picture: which functions ran when, and what they cost. Cell by cell, as in a notebook.

    picture.py [CAPTURE [PROGRAM [PICTURE]]]   needs waymark, numpy and matplotlib
"""
# %% The capture, and the program that ran
import sys

import matplotlib
import numpy as np

import waymark

matplotlib.use("Agg")  # without a screen; leave it out in a notebook
import matplotlib.pyplot as plt  # noqa: E402

capture_path, program, picture = (sys.argv[1:] + ["examples/sort/capture", "examples/sort/sort.elf", "sort.png"][len(sys.argv) - 1:])[:3]
capture = waymark.open(capture_path, symbols=program)

# %% Every range of instructions that ran, as arrays
batches = list(capture.flow())
start = np.concatenate([batch.start for batch in batches])
instructions = np.concatenate([batch.instructions for batch in batches])
when = np.cumsum(instructions)
print(f"{when[-1]} instructions in {len(start)} ranges")

# %% The cost of each function
functions = capture.answers().functions
cost = functions["self"]
hottest = [i for i in np.argsort(cost)[::-1][:10] if cost[i]]
print(", ".join(f"{functions['name'][i]} {cost[i]}" for i in hottest))

# %% When each function ran
row = np.full(len(start), -1)
for number, i in enumerate(hottest):
    first = functions["address"][i]
    row[(start >= first) & (start < first + functions["bytes"][i])] = number

# %% The picture
figure, (time, bars) = plt.subplots(1, 2, figsize=(12, 4), width_ratios=[3, 1], sharey=True)
known = row >= 0
time.scatter(when[known], row[known], s=2)
time.set(xlabel="instructions", yticks=range(len(hottest)), yticklabels=functions["name"][hottest], title="what ran when")
bars.barh(range(len(hottest)), cost[hottest])
bars.set(xlabel="instructions of its own")
bars.invert_yaxis()
figure.tight_layout()
figure.savefig(picture)
capture.close()
