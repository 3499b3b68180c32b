// What both scripts need.
export const element = (id) => document.getElementById(id);

export function authorization() {
  const key = element("key").value;
  return key ? { authorization: `Bearer ${key}` } : {};
}
