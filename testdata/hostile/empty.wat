;; Nothing is in it.
(module)
