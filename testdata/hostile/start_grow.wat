;; tries: to grow memory and table in the start function as far as they go
;; at: describe
;; wants: describe_limit_exceeded wants to grow the memory beyond 67108864 bytes (limit memory_bytes)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (table 1 funcref)
  (func $begin
    (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (loop $again (br_if $again (i32.ne (table.grow 0 (ref.null func) (i32.const 100)) (i32.const -1)))))
  (start $begin)
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
