import { once } from 'node:events'
import { expect, it } from 'vitest'
import { startCommand } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'

const service = useService()

it.each([
  ['export', ['export', 'people']],
  ['seed --print', ['seed', '--people', '1000000', '--print', 'people']],
])('kith %s exits without a message when the reader closes the pipe', async (_, words) => {
  const { token, client } = await service.organization()
  // The output is larger than the buffer of a pipe.
  const people = Array.from({ length: 3_000 }, (_, i) => ({ external_id: `p${i}`, first_name: 'x'.repeat(100) }))
  for await (const answer of client.people.import(people)) expect(answer).not.toHaveProperty('error')
  const { child, ended } = startCommand(words, { KITH_URL: service.address, KITH_TOKEN: token })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const { code, stderr } = await ended
  expect(code).toBe(1)
  expect(stderr).not.toMatch(/EPIPE|^ {4}at /m)
})
