import { expect, it } from 'vitest'
import type { Fault, Refusal } from '../values/errors.ts'
import { requireScope, type Scope, scopes } from './scopes.ts'

function refusalOf(held: Scope[], scope: Scope): Refusal | undefined {
  try {
    requireScope({ scopes: new Set(held) }, scope)
    return undefined
  } catch (error) {
    return (error as Fault).refusal
  }
}

it.each(scopes)('%s is denied to a token with all other scopes and granted to a token with only it', scope => {
  expect(refusalOf([scope], scope)).toBeUndefined()
  const others = scopes.filter(other => other !== scope)
  expect(refusalOf(others, scope)).toMatchObject({
    code: 'forbidden',
    status: 403,
    headers: { 'WWW-Authenticate': `Bearer realm="kith", error="insufficient_scope", scope="${scope}"` },
  })
})
