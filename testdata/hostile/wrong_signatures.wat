;; All that the host looks up has another type, and an import too.
(module
  (import "weft:v1" "state_get" (func (param i64) (result i64)))
  (memory 1)
  (global (export "memory") i32 (i32.const 0))
  (func (export "weft_describe") (result i32) (i32.const 0))
  (func (export "weft_step"))
  (func (export "_initialize") (param i32)))
