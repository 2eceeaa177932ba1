import { describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/process/app.ts'
import { loadConfig } from '../../src/process/config.ts'
import { createContractCheck, templateOf } from './contract.ts'

const check = createContractCheck(() => openApiDocument({ config: loadConfig({}) }))
const error = { error: 'not_found', errorstack: null, message: 'No.', details: [], request_id: 'a' }

describe('the contract check', () => {
  it('accepts documented responses', () => {
    check({ method: 'DELETE', path: '/v1/people/ada', status: 200, body: { status: 'Success', data: true } })
    check({ method: 'GET', path: '/v1/people/ada?x=1', status: 404, body: error })
    check({ method: 'GET', path: '/nowhere', status: 404, body: error })
  })

  it.each([
    ['an undocumented status', 'PATCH', '/v1/people/ada', 404, error, /404, which .* does not document/],
    [
      'an error code with the status of another',
      'GET',
      '/v1/people/ada',
      400,
      error,
      /body\/error must be equal to one of/,
    ],
    [
      'an undocumented field',
      'DELETE',
      '/v1/people/ada',
      200,
      { status: 'Success', data: true, extra: 1 },
      /additional/,
    ],
    [
      'a value of the wrong type',
      'DELETE',
      '/v1/people/ada',
      200,
      { status: 'Success', data: 1 },
      /body\/data must be boolean/,
    ],
    ['a success of an unknown path', 'GET', '/nowhere', 200, {}, /no such operation/],
  ])('rejects %s', (_, method, path, status, body, message) => {
    expect(() => check({ method, path, status, body })).toThrow(message)
  })

  it('rejects an undocumented header, and a creation without its Location', () => {
    const deleted = { method: 'DELETE', path: '/v1/people/ada', status: 200, body: { status: 'Success', data: true } }
    check({ ...deleted, headers: new Headers({ 'X-Kith-Sequence': '1' }) })
    expect(() => check({ ...deleted, headers: new Headers({ ETag: '"1"' }) })).toThrow('undocumented header ETag')
    const created = { method: 'POST', path: '/v1/clients', status: 201, body: {}, headers: new Headers() }
    expect(() => check(created)).toThrow('without the documented header Location')
  })

  it('prefers a literal segment to a parameter, the last segment first', () => {
    const templates = ['/v1/people/{external_id}/related', '/v1/people/internal/{uuid}', '/v1/people/{external_id}']
    expect(templateOf(templates, '/v1/people/internal/related')).toBe('/v1/people/{external_id}/related')
    expect(templateOf(templates, '/v1/people/internal/01936f3e')).toBe('/v1/people/internal/{uuid}')
    expect(templateOf(templates, '/v1/people/a%2Fb/related')).toBe('/v1/people/{external_id}/related')
    expect(templateOf(templates, '/v1/people/')).toBeUndefined()
  })
})
