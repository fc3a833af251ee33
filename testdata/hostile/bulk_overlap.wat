;; tries: memory.copy over overlapping ranges that are longer than any piece, both ways, and looks at every byte
;; at: invoke
;; wants: ok
;; limits: fuel=100000000
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 10)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $pattern (local $i i32)
    (loop $next
      (i32.store8 (i32.add (i32.const 65536) (local.get $i)) (i32.mul (local.get $i) (i32.const 7)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 300000)))))
  (func $expect (param $at i32) (param $n i32) (local $i i32)
    (loop $next
      (if (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $i))) (i32.and (i32.mul (local.get $i)
        (i32.const 7)) (i32.const 255)))
        (then (unreachable)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $pattern)
    (memory.copy (i32.const 70000) (i32.const 65536) (i32.add (local.get 0) (i32.const 299988)))
    (call $expect (i32.const 70000) (i32.const 300000))
    (call $pattern)
    (memory.copy (i32.const 60001) (i32.const 65536) (i32.add (local.get 0) (i32.const 299988)))
    (call $expect (i32.const 60001) (i32.const 300000))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
