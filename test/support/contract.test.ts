import { describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { contractOf, templateOf } from './contract.ts'

const check = contractOf(() => openApiDocument({ config: loadConfig({}) }))
const error = { error: 'not_found', errorstack: null, message: 'No.', details: [], request_id: 'a' }

describe('the contract that answers are held to', () => {
  it('lets documented answers pass', () => {
    check({ method: 'DELETE', path: '/v1/people/ada', status: 200, body: { status: 'Success', data: true } })
    check({ method: 'GET', path: '/v1/people/ada?x=1', status: 404, body: error })
    check({ method: 'GET', path: '/nowhere', status: 404, body: error })
  })

  it.each([
    ['a status that is not documented', 'PATCH', '/v1/people/ada', 404, error, /404, which .* does not document/],
    ['an error word at another status', 'GET', '/v1/people/ada', 400, error, /body\/error must be equal to one of/],
    [
      'a field that is not documented',
      'DELETE',
      '/v1/people/ada',
      200,
      { status: 'Success', data: true, extra: 1 },
      /additional/,
    ],
    [
      'a value of another type',
      'DELETE',
      '/v1/people/ada',
      200,
      { status: 'Success', data: 1 },
      /body\/data must be boolean/,
    ],
    ['success at an address that is none', 'GET', '/nowhere', 200, {}, /no such operation/],
  ])('refuses %s', (_, method, path, status, body, message) => {
    expect(() => check({ method, path, status, body })).toThrow(message)
  })

  it('knows a literal segment before a parameter', () => {
    const templates = ['/v1/people/{external_id}/related', '/v1/people/internal/{uuid}', '/v1/people/{external_id}']
    expect(templateOf(templates, '/v1/people/internal/related')).toBe('/v1/people/internal/{uuid}')
    expect(templateOf(templates, '/v1/people/a%2Fb/related')).toBe('/v1/people/{external_id}/related')
    expect(templateOf(templates, '/v1/people/')).toBeUndefined()
  })
})
