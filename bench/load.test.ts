import { expect, it } from 'vitest'
import { parsePgbench, parseWrk } from './load.ts'
import { median } from './measure.ts'
import { formatRequest } from './requests.ts'

it('takes the mean of the two middle figures as the median of an even number', () => {
  expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([7])]).toEqual([2, 2.5, 7])
})

const pgbench = `number of failed transactions: 0 (0.000%)
latency average = 1.234 ms
initial connection time = 20.1 ms
tps = 12345.678901 (without initial connection time)
`

it('parses the output of pgbench, and rejects it if a transaction failed', () => {
  expect(parsePgbench(pgbench, 2)).toEqual({
    done: 24_691.357802,
    rate: 12_345.678901,
    p50Ms: 1.234,
    p99Ms: Number.NaN,
  })
  expect(() => parsePgbench(pgbench.replace('transactions: 0', 'transactions: 3'), 2)).toThrow('no figures')
  expect(() => parsePgbench('connection refused', 2)).toThrow('no figures')
})

const wrk = (refused: number, broken: number) =>
  `Running 3s test\n{"requests":3000,"duration":1500000,"p50":900,"p99":4200,"refused":${refused},"broken":${broken}}\n`

it('parses the output of wrk, and rejects it if a request was unsuccessful', () => {
  expect(parseWrk(wrk(0, 0))).toEqual({ done: 3_000, rate: 2_000, p50Ms: 0.9, p99Ms: 4.2 })
  expect(() => parseWrk(wrk(1, 0))).toThrow('1 responses were unsuccessful')
  expect(() => parseWrk(wrk(0, 2))).toThrow('2 requests got no response')
})

it('formats a request with the length of its body in bytes', () => {
  const target = { address: 'http://127.0.0.1:8080', token: 't' }
  const request = { method: 'POST', path: '/v1/people', body: { first_name: 'Zoë' } } as const
  expect(formatRequest(target, request)).toBe(
    'POST /v1/people HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer t\r\nContent-Type: application/json\r\n' +
      'Content-Length: 21\r\n\r\n{"first_name":"Zoë"}',
  )
})
