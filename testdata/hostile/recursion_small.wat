;; tries: to nest a hundred calls where a kilobyte of frames is allowed
;; at: invoke
;; wants: limit_exceeded frames of nested calls ... more than 1024 bytes (limit call_depth)
;; limits: depth=1024
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $deeper (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $deeper (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 0))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $deeper (i32.const 100))))
