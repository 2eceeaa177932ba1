import { describe, expect, it } from 'vitest'
import type { Definitions } from '../client/index.ts'
import { columnsOf, targetsOf } from './columns.ts'
import { recognizeColumns } from './header-names.ts'

const attribute = (key: string, name: string, type: string) => ({
  ...{ key, name, type, owner: 'people', cardinality: 'one', state: 'active' },
})
const definitions = {
  stacks: [],
  attributes: [attribute('shoe_size', 'Schuhgröße', 'number'), attribute('phone', 'Telefon', 'text')],
  consent_types: [
    { id: 1, name: 'Newsletter', state: 'active', mandatory: false, channels: [{ channel: 'email' }] },
    {
      id: 2,
      name: 'Angebote',
      state: 'active',
      mandatory: false,
      channels: [{ channel: 'email' }, { channel: 'sms' }],
    },
  ],
} as unknown as Definitions
const targets = targetsOf('people', definitions)
const plainTargets = targetsOf('people', { ...definitions, attributes: [], consent_types: [] })
const found = (names: string, among = plainTargets) =>
  recognizeColumns(names.split(';'), among).map(target => target?.name ?? null)

describe('the header of a file', () => {
  it.each([
    ['Customer Number;First name;Surname;E-mail address;Mobile phone;Date of birth;Language', 'English'],
    ['Kunden-Nr.;Vorname;Nachname;E-Mail-Adresse;Handynummer;Geburtsdatum;Sprache', 'German'],
    ['Codice cliente;Nome;Cognome;Indirizzo e-mail;Cellulare;Data di nascita;Lingua', 'Italian'],
    ['Numéro client;Prénom;Nom;Courriel;Téléphone portable;Date de naissance;Langue', 'French'],
    ['Código cliente;Nombre;Apellidos;Correo electrónico;Móvil;Fecha de nacimiento;Idioma', 'Spanish'],
  ])('is recognized: %s', header => {
    const fields = ['external_id', 'first_name', 'last_name', 'email', 'mobile_number', 'date_of_birth', 'language']
    expect(found(header)).toEqual(fields)
  })

  it('names each field once: by its own name first, a mobile number before a telephone number, and Name beside a first name', () => {
    expect(found('E-Mail;email;Telefon;Handy')).toEqual([null, 'email', null, 'mobile_number'])
    expect(found('Name;Vorname')).toEqual(['last_name', 'first_name'])
    expect(found('Name;Stadt')).toEqual([null, null])
  })

  it('names attributes and purposes as the schema calls them, before the usual names of fields', () => {
    expect(found('SCHUHGROESSE;Schuhgrösse;Shoe size', targets)).toEqual([null, null, 'attribute_values.shoe_size'])
    expect(found('Schuhgröße;Telefon;Newsletter;Angebote;Angebote (SMS)', targets)).toEqual([
      ...['attribute_values.shoe_size', 'attribute_values.phone', 'consents.1.email', null, 'consents.2.sms'],
    ])
  })

  it('is read beside what options say, which outweigh it, and the command says how', () => {
    const options = { ignore: ['Handy'], prefixes: new Map(), constants: new Map([['language', 'de']]) }
    const columns = columnsOf(['Vorname', 'Handy', 'Mail', 'Sprache'], plainTargets, {
      ...{ ...options, map: new Map([['Vorname', 'last_name']]), unknownAsAttributes: true },
    })
    expect(columns.targets.map(target => ('name' in target ? target.name : null))).toEqual([
      ...['last_name', null, 'email', 'attribute_values.Sprache', 'language'],
    ])
    expect(columns.notices).toEqual(['Read by their names: Mail as email.'])
  })
  it('is refused beside an option that maps a column to no field, also where other columns become attributes', () => {
    const options = { ignore: [], prefixes: new Map(), constants: new Map(), unknownAsAttributes: true }
    const map = new Map([['Vorname', 'frist_name']])
    expect(() => columnsOf(['Vorname', 'Mail'], plainTargets, { ...options, map })).toThrow(
      /^--map Vorname=frist_name: there is no such field\. The fields are /,
    )
  })
})
