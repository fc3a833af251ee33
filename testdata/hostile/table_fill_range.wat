;; tries: table.fill of 2^32-1 entries
;; at: invoke
;; wants: trap invalid table access
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (table 10 funcref)
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (table.fill 0 (i32.const 1) (ref.null func) (i32.const -1))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
