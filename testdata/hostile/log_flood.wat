;; tries: to log for ever
;; at: invoke
;; wants: limit_exceeded more than 100 lines of log
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "log" (func $log (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\82\00\61x") ;; [0, "x"]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again
      (drop (call $log (i32.const 600) (i32.const 4)))
      (br $again))
    (unreachable)))
