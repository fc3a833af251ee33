;; tries: nothing; it is a command, with _start only
;; at: upload
;; wants: missing_export weft_describe
;; wants: missing_export weft_step
;; wants: command_module buildmode=c-shared
(module
  (memory (export "memory") 1)
  (func (export "_start")))
