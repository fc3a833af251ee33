;; tries: to send large requests and to get large answers, for ever
;; at: invoke
;; wants: limit_exceeded more than 1000 host calls
;; limits: fuel=1000000000
;; answer: 65536
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "state_get" (func $state_get (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again (drop (call $state_get (i32.const 0) (i32.const 65536))) (br $again))
    (unreachable)))
