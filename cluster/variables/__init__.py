"""The variables of a model: their traits, the servers that hold them, and their values.

uses             the uses of a variable in a finished graph
functions        variables that the functions of a graph change
profile          how the transport treats each variable, by its uses
placement        the server that holds each variable, by bytes
partition        the variables that are cut into slices
partition_count  the number of slices, for the network that there is
layout           how the servers hold all variables of a model
masters          the variables on the servers, whole or in slices
local_copies     new values on their way into a worker's variables
buckets          the variables that travel together, and their order
tables           variables of which a step needs some rows
wire_format      the numbers in which values travel
saved            a variable as a checkpoint knows it
"""
