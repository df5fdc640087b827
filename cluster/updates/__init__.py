"""Change variables by their gradients, once the gradients are where the variables are.

incremental_apply    an optimizer applied to some variables at a time
imported_update      an optimizer that looks at names, whole variables or all gradients
optimizer_gradients  the gradients that an optimizer computes, and changes
grouped              several optimizers, by the beginnings of names
slots                an optimizer's values for a variable, in few operations
nan_guard            losses and gradients that are not finite numbers
"""
