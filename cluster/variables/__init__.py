"""The variables of a model: their traits, the servers that hold them, and their values.

uses             the uses of a variable in a finished graph
functions        variables that the functions of a graph change
profile          the transport of each variable, by its uses
placement        the server of each variable, by bytes, and the slices of large variables
partition_count  the number of slices, by a measurement of the network
layout           the pieces of all variables: on the servers, in buckets, in a checkpoint
masters          the variables on the servers, whole or in slices
local_copies     new values on the way to a worker's variables
tables           variables of which a step needs only some rows
wire_format      the number formats in which values are sent
"""
