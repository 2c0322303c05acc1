# The layers and what each may include: the one statement of it. tests/layers_test.py reads this file and fails on any
# #include that crosses a line missing here. Changing a line is a decision (docs/architecture.md), not a workaround.
#
# waymark_layer(name  layers it may include…)
waymark_layer(core)
waymark_layer(isa        core)
waymark_layer(flow       core isa)
waymark_layer(coresight  core)
waymark_layer(pft        core isa flow)
waymark_layer(spe        core)
waymark_layer(dpu        core)
waymark_layer(image      core isa)
waymark_layer(capture    core coresight)
waymark_layer(record     core isa coresight pft spe dpu image capture)
waymark_layer(analysis   core isa flow spe dpu image capture)
waymark_layer(report     core isa analysis)
waymark_layer(pipeline   core isa flow coresight pft dpu image capture)
waymark_layer(cli        core isa flow coresight pft spe dpu image capture record analysis report pipeline)
