;; tries: to have the host copy the same response of 64 KiB again and again, 2 GiB in all, for the fuel of the calls alone
;; at: invoke
;; wants: fuel_exhausted more than 2000000 units of fuel (limit fuel)
;; limits: fuel=2000000
;; answer: 65536
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "state_get" (func $state_get (param i32 i32) (result i64)))
  (import "weft:v1" "response" (func $response (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\81\60")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32) (local i32)
    (drop (call $state_get (i32.const 600) (i32.const 2)))
    (loop $again
      (call $response (i32.const 0) (i32.const 0) (i32.const 65536))
      (br_if $again (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 32768))))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
