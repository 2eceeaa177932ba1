import { expect, it } from 'vitest'
import { readQuickStarts, runExample } from '../client/test/examples.ts'
import { useOwnService } from './support/service.ts'

const service = useOwnService()

it('the TypeScript quick start shows its real output, which is the same when it runs again', async () => {
  const [example, ...others] = readQuickStarts()
  expect(others).toEqual([])
  const { client, token } = await service.organization()
  const environment = { KITH_URL: service.address, KITH_TOKEN: token }
  for (const _run of [1, 2]) {
    const { printed, expected } = await runExample(example!, client, environment)
    expect(expected).toHaveLength(3)
    expect(printed).toEqual(expected)
  }
})
