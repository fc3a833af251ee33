;; tries: table.copy over overlapping ranges that are longer than any piece, both ways, and looks at every entry
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (table 40000 funcref)
  (elem declare func $one)
  (func $one)
  (func $pattern (local $i i32)
    (table.fill 0 (i32.const 0) (ref.null func) (table.size 0))
    (loop $next
      (table.set 0 (i32.add (i32.const 1000) (local.get $i)) (ref.func $one))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 3))) (i32.const 30000)))))
  (func $expect (param $at i32) (local $i i32)
    (loop $next
      (if (i32.ne (ref.is_null (table.get 0 (i32.add (local.get $at) (local.get $i)))) (i32.ne (i32.rem_u
        (local.get $i) (i32.const 3)) (i32.const 0)))
        (then (unreachable)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 30000)))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $pattern)
    (table.copy 0 0 (i32.const 1001) (i32.const 1000) (i32.add (local.get 0) (i32.const 29988)))
    (call $expect (i32.const 1001))
    (call $pattern)
    (table.copy 0 0 (i32.const 333) (i32.const 1000) (i32.add (local.get 0) (i32.const 29988)))
    (call $expect (i32.const 333))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
