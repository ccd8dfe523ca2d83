/** A date as Python's strftime writes it, in English and at midnight. */
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = [
  ...["January", "February", "March", "April", "May", "June"],
  ...["July", "August", "September", "October", "November", "December"],
];

const two = (number: number) => String(number).padStart(2, "0");

const directives: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getUTCFullYear()),
  y: (date) => two(date.getUTCFullYear() % 100),
  m: (date) => two(date.getUTCMonth() + 1),
  B: (date) => months[date.getUTCMonth()]!,
  b: (date) => months[date.getUTCMonth()]!.slice(0, 3),
  d: (date) => two(date.getUTCDate()),
  A: (date) => days[date.getUTCDay()]!,
  a: (date) => days[date.getUTCDay()]!.slice(0, 3),
  H: () => "00",
  I: () => "12",
  M: () => "00",
  S: () => "00",
  p: () => "AM",
  "%": () => "%",
};

/** `date` is YYYY-MM-DD. With "-" a number has no zero in front: %-d. Throws for a directive that is not known. */
export function strftime(date: string, format: string): string {
  const midnight = new Date(`${date}T00:00:00Z`);
  return format.replace(/%(-?)(.?)/g, (all, short: string, letter: string) => {
    const write = directives[letter];
    if (write === undefined) throw new Error(`strftime_now does not know ${all} here`);
    return short ? write(midnight).replace(/^0(?=.)/, "") : write(midnight);
  });
}
