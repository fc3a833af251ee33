;; tries: to keep the response to the last call but one
;; at: invoke
;; wants: trap response: 100 bytes from offset 0 are out of range: there are 4
;; answer: 4
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "log" (func $log (param i32 i32) (result i64)))
  (import "weft:v1" "response" (func $response (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\82\00\61x")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (drop (call $log (i32.const 600) (i32.const 4)))
    (call $response (i32.const 1024) (i32.const 0) (i32.const 100))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
