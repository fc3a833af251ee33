;; tries: to leave marks all over its memory by nesting calls too deep; the next invocation returns 7 if it finds one
;; at: invoke
;; wants: limit_exceeded frames of nested calls ... more than 1048576 bytes (limit call_depth)
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.or (i32.load (i32.const 40000)) (i32.load8_u (i32.const 65535))) (then (return (i32.const 7))))
    (memory.fill (i32.const 1024) (i32.const 1) (i32.const 64512))
    (call $deeper (local.get 0))))
