// Reading memory in blocks, for software devices.
//
// llvmpipe (seen in Mesa 22.3) reads through a device address lane by lane, in a loop with a branch,
// unless it can prove that the address is the same in all lanes: then it is one scalar load. Only
// push constants and what is computed from them count as proof, at whatever index they are read, and
// only outside of any branch or loop. So
//   - the number of the subgroup's task is looked up, digit by digit, in a table among the push
//     constants that holds the numbers from 0 to BLOCK_DIGITS - 1;
//   - every lane reads all words of the subgroup's block and picks its own by its number in the
//     subgroup, which is a constant there: one vector load is what is left of it all;
//   - a kernel is straight code over a fixed number of words, and its last task overlaps the one
//     before it where the work does not divide.
// Every step is valid on any device whose subgroups are full; others just gain nothing by it.
