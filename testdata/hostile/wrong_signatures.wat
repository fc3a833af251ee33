;; tries: to give the host functions of other types than it looks up, and to import one so
;; at: upload
;; wants: wrong_signature weft:v1.state_get must be (i32, i32) -> (i64), not (i64) -> (i64)
;; wants: wrong_signature weft_describe must be () -> (), not () -> (i32)
;; wants: wrong_signature weft_step must be (i32) -> (i32), not () -> ()
;; wants: wrong_signature _initialize must be () -> (), not (i32) -> ()
;; wants: wrong_signature memory must be the memory, not a global
(module
  (import "weft:v1" "state_get" (func (param i64) (result i64)))
  (memory 1)
  (global (export "memory") i32 (i32.const 0))
  (func (export "weft_describe") (result i32) (i32.const 0))
  (func (export "weft_step"))
  (func (export "_initialize") (param i32)))
