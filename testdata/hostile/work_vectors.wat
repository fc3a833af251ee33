;; tries: to have the host look at four million vectors of nothing, 1024 by a call, for the fuel of the calls alone
;; at: invoke
;; wants: fuel_exhausted more than 2000000 units of fuel (limit fuel)
;; limits: fuel=2000000 calls=1000000
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32) (local i32)
    (loop $again
      (drop (call $fd_write (i32.const 1) (i32.const 1024) (i32.const 1024) (i32.const 600)))
      (br_if $again (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 4096))))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
