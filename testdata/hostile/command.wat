;; A command: it has _start only.
(module
  (memory (export "memory") 1)
  (func (export "_start")))
