;; tries: a manifest whose step accepts an event that nobody declares
;; at: manifest
;; wants: unknown_type Nothing
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\82jStartEventgNothingfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 93)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
