import type { ProfileField } from '../client/index.ts'
import type { Target } from './target.ts'

/**
 * The usual names of the fields in files, in the languages of the console, French and Spanish, without accents, spaces
 * and signs. If two columns of a file match, the one with the earlier name becomes the field: a mobile number before a
 * telephone number.
 */
const usualNames: Partial<Record<ProfileField | 'external_id', string>> = {
  external_id:
    'kundennummer kundennr kundenid kennung kundenkennung externekennung mitgliedsnummer mitgliedsnr personennummer ' +
    'customernumber customerno customernr customerid membernumber memberid identifier ' +
    'identificativo codicecliente numerocliente idcliente numeroclient codeclient identifiant numerodecliente codigocliente identificador',
  first_name: 'vorname rufname firstname givenname forename nome prenom nombre nombredepila',
  last_name: 'nachname familienname zuname lastname surname familyname cognome nomdefamille nom apellidos apellido',
  email:
    'email mail emailadresse mailadresse emailaddress indirizzoemail indirizzomail postaelettronica courriel adresseemail adressemail ' +
    'adresseelectronique correoelectronico correo direcciondecorreo',
  mobile_number:
    'mobilnummer mobil mobiltelefon mobiltelefonnummer handynummer handy handynr mobilenumber mobilephone mobilephonenumber mobile cellphone ' +
    'cellulare numerocellulare telefonocellulare numerodicellulare portable telephoneportable numeroportable telephonemobile movil telefonomovil ' +
    'numeromovil telefonnummer telefon telnr tel phonenumber phone telephone telefono numeroditelefono numerodetelephone numerodetelefono',
  mobile_prefix:
    'landervorwahl landesvorwahl phoneprefix prefisso prefissointernazionale indicatif prefijointernacional',
  date_of_birth:
    'geburtsdatum geburtstag gebdatum dateofbirth birthdate birthday dob datadinascita datedenaissance fechadenacimiento',
  language: 'sprache language lingua langue idioma',
  email_consent: 'emaileinwilligung emailconsent consensoemail',
  sms_consent: 'smseinwilligung smsconsent consensosms',
  push_notification_consent: 'pushmitteilungen pushnotifications notifichepush',
}

/** A name in lower case without accents, spaces and signs, because files differ in these. */
export const plainName = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .normalize('NFD')
    .replace(/[^\p{L}\p{N}]/gu, '')

/** The names of a target, in plain form: its key and its title. */
function plainNamesOf(field: string, target: Exclude<Target, { to: 'nothing' }>): string[] {
  if (target.to === 'attribute') return [field, target.label].map(plainName)
  if (target.to !== 'consent') return [plainName(field)]
  const { label, channel, isOnlyChannel } = target
  return [field, `${label} ${channel}`, `${channel} ${label}`, ...(isOnlyChannel ? [label] : [])].map(plainName)
}

/**
 * Finds the field of each column by its name: the field's own name, else the name of an attribute or a purpose in the
 * schema, else a usual name of the field. Each field is found once, and fields in `taken` never. Null for any other
 * column.
 */
export function recognizeColumns(
  names: string[],
  fieldTargets: Map<string, Target>,
  taken: Iterable<string> = [],
): (Exclude<Target, { to: 'nothing' }> | null)[] {
  type Known = Exclude<Target, { to: 'nothing' }>
  const used = new Set(taken)
  const found = names.map((): Known | null => null)
  const plain = names.map(plainName)
  const take = (index: number, target: Target | null | undefined) => {
    if (index === -1 || found[index] || !target || target.to === 'nothing' || used.has(target.name)) return
    used.add(target.name)
    found[index] = target
  }
  for (const [index, name] of names.entries()) take(index, fieldTargets.get(name))
  for (const [field, target] of fieldTargets)
    if (target.to !== 'nothing')
      for (const name of plainNamesOf(field, target)) if (name !== '') take(plain.indexOf(name), target)
  for (const [field, usual] of Object.entries(usualNames))
    for (const name of usual.split(' '))
      take(
        plain.findIndex((each, index) => each === name && found[index] === null),
        fieldTargets.get(field),
      )
  // Beside a first name, Name is the last name.
  if (used.has('first_name')) take(plain.indexOf('name'), fieldTargets.get('last_name'))
  return found
}
