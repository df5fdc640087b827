"""The variables of a model: their traits, the servers that hold them, and their values.

uses             the uses of a variable in a finished graph
functions        variables that the functions of a graph change
profile          how the transport treats each variable, by its uses
placement        the server that holds each variable, by bytes, and the slices of large ones
partition_count  the number of slices, for the network that there is, which it measures
layout           the pieces of all variables: on the servers, in buckets on their way, in a checkpoint
masters          the variables on the servers, whole or in slices
local_copies     new values on their way into a worker's variables
tables           variables of which a step needs some rows
wire_format      the numbers in which values travel
"""
