;; tries: addresses at the edge: each range ends exactly with the memory, or is empty there
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "input" (func $input (param i32 i32 i32)))
  (import "weft:v1" "response" (func $response (param i32 i32 i32)))
  (import "weft:v1" "state_get" (func $state_get (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $input (i32.sub (i32.const 65536) (local.get 0)) (i32.const 0) (local.get 0))
    (call $input (i32.const 65536) (local.get 0) (i32.const 0))
    (drop (call $state_get (i32.const 65536) (i32.const 0)))
    (drop (call $state_get (i32.const 65534) (i32.const 2)))
    (call $response (i32.const 65535) (i32.const 0) (i32.const 1))
    (call $response (i32.const 65536) (i32.const 1) (i32.const 0))
    (memory.copy (i32.const 65533) (i32.const 512) (i32.const 3))
    (call $output (i32.const 65533) (i32.const 3))
    (i32.const 0)))
