;; tries: to log for ever in weft_describe
;; at: describe
;; wants: describe_limit_exceeded more than 100 lines of log
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "log" (func $log (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\82\00\61x")
  (func (export "weft_describe")
    (loop $again (drop (call $log (i32.const 600) (i32.const 4))) (br $again)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
