"""What a model's variables are like, which server holds which part, and where their values are.

uses             what a finished graph does with a variable
profile          how the transport treats each variable, by its uses
placement        which server holds which variable, by bytes
partition        which variables are cut into slices
partition_count  in how many slices, for the network that there is
layout           how the servers hold all variables of a model
masters          the variables on the servers, whole or in slices
local_copies     new values on their way into a worker's variables
buckets          which variables travel together, and in which order
tables           variables of which a step needs some rows
wire_format      the numbers in which values travel
saved            what a variable is in a checkpoint
"""
