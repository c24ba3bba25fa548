/* Commands of the `mlx` tool: one row in main.c each. */
#pragma once

/* argv[0] is the command's name. Returns the exit code. */
int cmd_info(int argc, char **argv);
int cmd_ops(int argc, char **argv);
int cmd_gates(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_kernel(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);
