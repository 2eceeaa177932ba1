import { describe, expect, it } from 'vitest'
import { authenticate, invalidToken, now, signOwn, signShared, useGate, validClaims } from '../../test/support/gate.ts'
import { statement } from '../db/db.ts'
import { createOrganization, findOrganization } from '../organizations/organizations.ts'
import type { Caller } from '../route/caller.ts'

const gate = useGate()
const withClaims = (claims: Record<string, unknown>) => signOwn(gate, { ...validClaims, ...claims })
const presentToken = (token: string, to = gate.authenticator) => authenticate(to, `Bearer ${token}`)
const scopesOf = async (scope: unknown) => ((await presentToken(await withClaims({ scope }))) as Caller).scopes

describe('a caller', () => {
  it('has the organization, the subject and the scopes of the token', async () => {
    const { id } = (await findOrganization(gate.db, 'default'))!
    const expected = { organization: { id, key: 'default' }, subject: 'attacker', scopes: new Set(['people:read']) }
    expect(await presentToken(await withClaims({}))).toMatchObject(expected)
    expect(await presentToken(signShared(validClaims, { alg: 'HS256', typ: 'jwt' }))).toMatchObject(expected)
  })

  it('of a token that kith issued has the requested scopes', async () => {
    const scope = 'people:read schema:write'
    const request = { organizationKey: 'default', subject: 'import', scope, ttlSeconds: 60 }
    const caller = await presentToken(await gate.authenticator.issueToken(request))
    expect(caller).toMatchObject({ subject: 'import', scopes: new Set(['people:read', 'schema:write']) })
  })

  it('has only scopes that the token names exactly, separated by single spaces', async () => {
    expect(await scopesOf('people:read unknown records:write')).toEqual(new Set(['people:read', 'records:write']))
    const nothing = [
      'people',
      'people:readx',
      'xpeople:read',
      'people:*',
      '*',
      'PEOPLE:READ',
      'people:read,people:write',
    ]
    const separators = ['people:read\tpeople:write', 'people:read\npeople:write', 'people:read\u00a0people:write']
    for (const scope of [...nothing, ...separators, '', ['people:read'], { 'people:read': true }, null, undefined])
      expect(await scopesOf(scope)).toEqual(new Set())
  })

  it('is accepted if its nbf and iat are 30 seconds in the future', async () => {
    expect(await presentToken(await withClaims({ nbf: now + 30, iat: now + 30 }))).toMatchObject({
      subject: 'attacker',
    })
  })
})

describe('a verified token', () => {
  it('is authenticated synchronously and without a query when it is used again', async () => {
    const headers = [`Bearer ${await withClaims({ jti: 'again' })}`]
    const caller = await gate.authenticator.authenticate(headers)
    gate.queries = []
    expect(gate.authenticator.authenticate(headers)).toBe(caller)
    expect(gate.queries).toEqual([])
  })

  it('is rejected from its exp on, with a message that says so', async () => {
    const token = await withClaims({ jti: 'sharp' })
    gate.nowMs = (now + 60) * 1_000 - 1
    expect(await presentToken(token)).toMatchObject({ subject: 'attacker' })
    gate.nowMs++
    const refusal = { ...invalidToken, message: 'The token is not valid: it has expired.' }
    expect(await presentToken(token)).toMatchObject(refusal)
    expect(await presentToken(token)).toMatchObject(refusal)
  })

  it('does not authenticate a token that differs in its last letter', async () => {
    const token = await withClaims({ jti: 'letter' })
    expect(await presentToken(token)).toMatchObject({ subject: 'attacker' })
    expect(await presentToken(`${token.slice(0, -1)}${token.endsWith('A') ? 'Q' : 'A'}`)).toMatchObject(invalidToken)
  })

  it('is evicted from the cache after many newer tokens', { timeout: 60_000 }, async () => {
    const tokens = Array.from({ length: 25_001 }, (_, index) => signShared({ ...validClaims, jti: `room ${index}` }))
    const authenticator = gate.open({ AUTH_SECRET: 'a shared secret of 32 bytes or more' })
    for (const token of tokens) await authenticator.authenticate([`Bearer ${token}`])
    expect(authenticator.authenticate([`Bearer ${tokens[1]}`])).not.toBeInstanceOf(Promise)
    expect(authenticator.authenticate([`Bearer ${tokens[0]}`])).toBeInstanceOf(Promise)
  })
})

describe('the organization of a token', () => {
  it('is queried once for several tokens', async () => {
    const authenticator = gate.open({})
    for (const jti of ['one', 'two', 'three']) await presentToken(await withClaims({ jti }), authenticator)
    expect(gate.queries).toHaveLength(1)
  })

  it('that does not exist is rejected, and queried again after a second', async () => {
    const token = await withClaims({ org: 'late' })
    expect(await presentToken(token)).toMatchObject(invalidToken)
    await createOrganization(gate.db, 'late')
    gate.nowMs += 999
    expect(await presentToken(token)).toMatchObject(invalidToken)
    expect(gate.queries).toHaveLength(1)
    gate.nowMs += 1
    expect(await presentToken(token)).toMatchObject({ organization: { key: 'late' } })
  })

  it('that cannot be queried causes an error, not a rejection of the token', async () => {
    const aborted = AbortSignal.abort(new Error('the time is over'))
    const headers = [`Bearer ${await withClaims({ jti: 'aborted' })}`]
    await expect(gate.open({}).authenticate(headers, aborted)).rejects.toThrow('the time is over')
  })
})

describe('many organizations', () => {
  let keys: string[]
  let made = 0
  /** Creates five organizations. Presents the tokens of the organizations with these numbers to one authenticator. */
  async function makePresent() {
    made += 1
    keys = Array.from({ length: 5 }, (_, index) => `many${made}-${index}`)
    for (const key of keys) await createOrganization(gate.db, key)
    const authenticator = gate.open({})
    const tokens = await Promise.all(keys.map(org => withClaims({ org, exp: now + 3_600 })))
    return (...numbers: number[]) => Promise.all(numbers.map(number => presentToken(tokens[number]!, authenticator)))
  }
  const lookUps = () => gate.queries.filter(name => name.startsWith('find_organization'))
  /** Presents the first token, so that all organizations are read again. */
  async function readTogether(present: Awaited<ReturnType<typeof makePresent>>) {
    gate.nowMs += 6_000
    gate.answered = []
    await present(0)
    await expect.poll(() => gate.answered).toContain('find_organizations')
  }

  it('are read again together while one of them is asked for', async () => {
    const present = await makePresent()
    await present(0, 1, 2, 3, 4)
    expect(lookUps()).toEqual(keys.map(() => 'find_organization'))
    gate.queries = []
    for (const _ of [1, 2]) await readTogether(present)
    expect(await present(4)).toMatchObject([{ organization: { key: keys[4] } }])
    expect(new Set(lookUps())).toEqual(new Set(['find_organizations']))
  })

  it('are read one by one if they were deleted, or nobody has asked for them in ten minutes', async () => {
    const present = await makePresent()
    await present(0, 1, 2)
    await gate.db.query(statement('', `delete from organizations where key = '${keys[1]}'`), [])
    gate.queries = []
    await readTogether(present)
    await expect.poll(() => present(1)).toMatchObject([invalidToken])
    gate.nowMs += 600_001
    gate.queries = []
    expect(await present(2)).toMatchObject([{ organization: { key: keys[2] } }])
    expect(lookUps()).toContain('find_organization')
  })
})
