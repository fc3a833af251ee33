;; tries: a manifest whose state begins with 10,000 maps, each inside of the one before
;; at: manifest
;; wants: invalid_manifest state
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\a1estate\a1gdefault")
  (func (export "weft_describe")
    (local $i i32)
    (memory.copy (i32.const 1024) (i32.const 600) (i32.const 16))
    (loop $next
      (i32.store16 (i32.add (i32.const 1040) (i32.mul (local.get $i) (i32.const 3))) (i32.const 0x61a1))
      (i32.store8 (i32.add (i32.const 1042) (i32.mul (local.get $i) (i32.const 3))) (i32.const 0x61))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000))))
    (call $output (i32.const 1024) (i32.const 31016)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
