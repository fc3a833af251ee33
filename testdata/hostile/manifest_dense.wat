;; tries: a manifest of a million empty maps in a list
;; at: manifest
;; wants: invalid_manifest
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 40)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\a1esteps\9a\00\0fB@")
  (func (export "weft_describe")
    (memory.copy (i32.const 65536) (i32.const 600) (i32.const 12))
    (memory.fill (i32.const 65548) (i32.const 0xa0) (i32.const 1000000))
    (call $output (i32.const 65536) (i32.const 1000012)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
