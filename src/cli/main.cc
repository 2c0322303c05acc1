#include "commands.h"

int main(int argc, char** argv) { return waymark::cli::run(argc, argv); }
