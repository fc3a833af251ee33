;; tries: to confuse whoever reads its code: instructions after the end of what can be reached, on a stack that may hold anything
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $never (param i32 i64) (unreachable) (i32.add) (drop) (loop (br 0) (br 0)))
  (func $early (param i32) (result i32)
    (return (local.get 0))
    (loop $again (br_if $again (i32.const 1)))
    (call $early (call $early (unreachable)))
    (i64.const 1) (return (drop)))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (block $out
      (br $out)
      (drop (i32.add (i64.eqz)))
      (loop $again (br $again))
      (br_table $out $out)
      (memory.fill) (memory.copy)
      (call $never)
      (drop (select (f64.const 1) (i32.const 1)))
      (block (result i64) (unreachable)) (drop)
      (if (then (return (i32.const 8))) (else (br $out)))
      (return (i32.const 9)))
    (if (i32.ne (call $early (i32.const 5)) (i32.const 5)) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
