;; tries: a manifest whose step catches the failures of a step that is not there
;; at: manifest
;; wants: unknown_catch_target nobody
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\82\a3dnamecruneemits\81iStopEventgaccepts\81jStartEvent\a4dnamedmendeemits\81iStopEventgaccepts\81oStepFailedEventgcatches\81fnobodyfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 154)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
