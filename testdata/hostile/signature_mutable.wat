;; tries: to give the host globals under the names of functions
;; at: upload
;; wants: wrong_signature weft_describe must be a function
;; wants: wrong_signature weft_step must be a function
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (global (export "weft_describe") (mut i32) (i32.const 0))
  (global (export "weft_step") i64 (i64.const 0)))
