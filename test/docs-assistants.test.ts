import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { readingTools } from '../src/assistants/reading-tools.ts'
import { writingTools } from '../src/assistants/writing-tools.ts'
import { connectByHttp } from './support/assistant.ts'
import { runInProcess } from './support/command.ts'
import { type Organization, useService } from './support/service.ts'

const page = readFileSync(new URL('../docs/assistants.md', import.meta.url), 'utf8')

/** The calls of the page: the name of a tool, its arguments, and after the arrow a part of the data of the answer. */
const calls = [...page.matchAll(/```tool\n(\w+) ([\s\S]*?)\n→ ([\s\S]*?)```/g)].map(([, tool, given, data]) => ({
  tool: tool!,
  given: JSON.parse(given!) as Record<string, unknown>,
  data: JSON.parse(data!) as object,
}))

describe('docs/assistants.md', () => {
  const service = useService()
  let shop: Organization

  beforeAll(async () => {
    shop = await service.organization()
    const seeded = await runInProcess(['seed'], { KITH_URL: service.address, KITH_TOKEN: shop.token })
    expect(seeded.code).toBe(0)
  }, 60_000)

  /** A token with the role that the page makes. */
  const limitedToken = async () => {
    const [, fields] = /echo '(.+)' > assistant\.json/.exec(page)!
    const [, scope] = /kith role create .* --scope "(.+)"/.exec(page)!
    const scopes = scope!.split(' ')
    await shop.send('POST', '/v1/roles', { key: 'assistant', scopes, fields: JSON.parse(fields!) })
    const made = await shop.send('POST', '/v1/tokens', { scopes, role: 'assistant', name: 'assistant', expires_in: 60 })
    return made.body.data.token as string
  }

  it('has a question', () => {
    expect(calls.length).toBeGreaterThan(3)
  })

  it.each(calls)(
    'shows what the tool really answers, also with the role of the page: $tool',
    async ({ tool, given, data }) => {
      for (const token of [shop.token, await limitedToken()]) {
        const assistant = await connectByHttp(service.address, token)
        expect(await assistant.call(tool, given)).toMatchObject({ isError: false, data })
      }
    },
  )

  it('lists every tool', () => {
    const listed = [...page.matchAll(/^\| `(\w+)` \| (?:GET|POST|PATCH)/gm)].map(([, name]) => name)
    expect(listed).toEqual([...readingTools, ...writingTools].map(({ name }) => name))
  })
})
