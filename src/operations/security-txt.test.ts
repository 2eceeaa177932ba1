import { describe, expect, it } from 'vitest'
import { useOwnService, useService } from '../../test/support/service.ts'
import { securityText } from './security-txt.ts'

const path = '/.well-known/security.txt'
const contact = 'mailto:security@contact.example'
const dayMs = 86_400_000

describe('security.txt with KITH_SECURITY_CONTACT', () => {
  const service = useOwnService({ KITH_SECURITY_CONTACT: contact })

  it('names the contact and an end within a year, to everybody', async () => {
    const response = await fetch(new URL(path, service.address))
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    const [first, second, ...rest] = (await response.text()).split('\n')
    expect([first, rest]).toEqual([`Contact: ${contact}`, ['']])
    const [, expires] = /^Expires: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$/.exec(second!)!
    const days = (Date.parse(expires!) - Date.now()) / dayMs
    expect(days).toBeGreaterThan(30)
    expect(days).toBeLessThan(365)
  })

  it('cannot be written', async () => {
    const response = await fetch(new URL(path, service.address), {
      method: 'POST',
      body: 'Contact: mailto:a@b.example',
    })
    expect(response.status).toBe(405)
  })
})

describe('security.txt without KITH_SECURITY_CONTACT', () => {
  const service = useService()

  it('is answered as any unknown path', async () => {
    const [own, unknown] = await Promise.all(
      [path, '/.well-known/unknown.txt'].map(async each => {
        const response = await fetch(new URL(each, service.address))
        const { request_id, ...body } = (await response.json()) as Record<string, unknown>
        return { status: response.status, body: JSON.stringify(body).replaceAll(each, '') }
      }),
    )
    expect(own!.status).toBe(404)
    expect(own).toEqual(unknown)
  })
})

describe('the text of security.txt', () => {
  it('is the same for all requests of a day, and has another end on the next day', () => {
    const start = Date.parse('2027-01-15T00:00:00Z')
    const text = securityText(contact, start)
    expect(text).toBe(`Contact: ${contact}\nExpires: 2027-07-14T00:00:00Z\n`)
    expect(securityText(contact, start + dayMs - 1)).toBe(text)
    expect(securityText(contact, start + dayMs)).not.toBe(text)
  })
})
